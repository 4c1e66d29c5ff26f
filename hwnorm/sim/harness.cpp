// Feeds and drains a design in bulk: arrays in, arrays out, no call per cycle.
//
// The file before this one (dut.h) defines Dut with settle() and edge(), put() and get() for
// ports of any width, the ports as macros, and drive_load() for the parameter streams.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "dut.h"

namespace {

enum Status { kDone, kHangs, kValidWithdrawn, kPayloadChanged, kLastWrong, kBeatTooMany };

struct Result {
  uint64_t first_in, first_out, last_out, beats_out, cycles;
  uint32_t status, saturated, framing_error;
};

void set(bool value, auto &port) {
  uint8_t bit = value;
  put(port, &bit, 1);
}

bool is_set(auto &port) {
  uint8_t bit = 0;
  get(port, &bit, 1);
  return bit & 1;
}

}  // namespace

extern "C" {

void *bench_new() {
  auto bench = std::make_unique<Dut>();
  Dut &dut = *bench;
  set(false, ARESETN);
  for (int n = 0; n < 4; n++) {
    dut.settle();
    dut.edge();
  }
  set(true, ARESETN);
  return bench.release();
}

void bench_delete(void *bench) { delete static_cast<Dut *>(bench); }

// A row on a parameter stream, which is always ready.
void bench_load(void *bench, int which, const uint8_t *data, uint64_t beats, uint64_t bytes) {
  Dut &dut = *static_cast<Dut *>(bench);
  for (uint64_t n = 0; n < beats; n++) {
    drive_load(dut, which, data + n * bytes, bytes, true, n + 1 == beats);
    dut.settle();
    dut.edge();
  }
  drive_load(dut, which, data, bytes, false, false);
}

// Feeds all beats and collects as many as `expected`, then watches some cycles for more.
void bench_run(void *bench, const uint8_t *in, uint64_t beats, uint64_t in_bytes, uint8_t *out,
               uint64_t expected, uint64_t out_bytes, uint64_t row_beats, const uint8_t *source,
               const uint8_t *sink, uint64_t period, uint64_t limit, Result *result) {
  Dut &dut = *static_cast<Dut *>(bench);
  Result r{};
  std::vector<uint8_t> held(out_bytes), now(out_bytes);
  uint64_t offered = 0, sent = 0, after = 0;
  bool stalled = false, held_last = false;
  while (after < 32 && r.status == kDone) {
    if (offered == sent && offered < beats && source[r.cycles % period]) {
      put(S_TDATA, in + offered * in_bytes, in_bytes);
      offered++;
      set(offered % row_beats == 0, S_TLAST);
    }
    bool take = sink[r.cycles % period];
    set(offered > sent, S_TVALID);
    set(take, M_TREADY);
    dut.settle();
    bool valid = is_set(M_TVALID), last = is_set(M_TLAST);
    get(M_TDATA, now.data(), out_bytes);
    if (stalled && !valid) r.status = kValidWithdrawn;
    if (stalled && valid && (now != held || last != held_last)) r.status = kPayloadChanged;
    if (valid && take) {
      if (r.beats_out == expected) {
        r.status = kBeatTooMany;
      } else {
        std::memcpy(out + r.beats_out * out_bytes, now.data(), out_bytes);
        if (!r.beats_out) r.first_out = r.cycles;
        r.last_out = r.cycles;
        r.beats_out++;
        if (last != (r.beats_out % row_beats == 0)) r.status = kLastWrong;
      }
    }
    stalled = valid && !take;
    held = now;
    held_last = last;
    if (offered > sent && is_set(S_TREADY)) {
      if (!sent) r.first_in = r.cycles;
      sent++;
    }
    dut.edge();
    r.cycles++;
    if (r.beats_out == expected) after++;
    if (r.beats_out < expected && r.cycles > limit) r.status = kHangs;
  }
  dut.settle();
  r.saturated = is_set(SATURATED);
  r.framing_error = is_set(FRAMING_ERROR);
  *result = r;
}

}  // extern "C"
