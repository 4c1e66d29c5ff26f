// Feeds and drains a design in bulk: blocks of beats come on standard input, blocks of beats go
// to standard output, and nobody is called in between.
//
// The file before this one (dut.h) defines Dut with settle(), edge() and finished() ($finish was
// called), open() and close() for waves, put() and get() for ports of any width, the ports as
// macros, and drive_load() for the parameters, with load_ready() for those that come in step with
// the rows. Ports that a design lacks are variables.
//
// All numbers are 64 bits in the machine's own order. In: Header; per loaded parameter its number,
// beats, bytes of a beat and the beats; per streamed parameter the bytes of a beat, which follow
// those of x in each beat, and a byte that says whether it is a row's last; the permissions of the
// source and of the sink; then, each time an 'm' frame asks for more, a Block and its beats (none:
// that was all). Out: frames of kind and length; 'm' more, 'd' beats out, maybe none as a sign of
// life, 'e' Result and the handshakes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include <unistd.h>

#include "dut.h"

namespace {

enum Status { kDone, kHangs, kValidWithdrawn, kPayloadChanged, kLastWrong, kBeatTooMany, kFinished };

struct Header {
  uint64_t loads, period, row_beats, in_bytes, out_bytes, trace_cycles, warm_cycles, streams,
      enable, shift;
};

struct Block {
  uint64_t beats, limit;
};

struct Result {
  uint64_t status, cycles, first_in, first_out, last_out, beats_in, beats_out, saturated, framing;
};

constexpr size_t kFlushBytes = 1 << 16;

// What is on a bus that is not valid.
constexpr uint8_t kJunk = 0xa5;

int output;

void receive(void *data, size_t bytes) {
  // The other side is gone: there is nobody to tell.
  if (bytes && std::fread(data, 1, bytes, stdin) != bytes) std::exit(3);
}

std::vector<uint8_t> receive_bytes(size_t bytes) {
  std::vector<uint8_t> data(bytes);
  receive(data.data(), bytes);
  return data;
}

void send_bytes(const void *data, size_t bytes) {
  auto at = static_cast<const uint8_t *>(data);
  while (bytes) {
    ssize_t done = write(output, at, bytes);
    if (done < 0) std::exit(3);
    at += done;
    bytes -= done;
  }
}

void send(char kind, const void *data, size_t bytes) {
  uint64_t head[2] = {static_cast<uint64_t>(kind), bytes};
  send_bytes(head, sizeof head);
  send_bytes(data, bytes);
}

void set(bool value, auto &port) {
  uint8_t bit = value;
  put(port, &bit, 1);
}

bool is_set(auto &port) {
  uint8_t bit = 0;
  get(port, &bit, 1);
  return bit & 1;
}

// Lets edges pass while the clock is not enabled, with junk on all inputs: nothing may move.
class Enable {
 public:
  Enable(Dut &device, const Header &h, const std::vector<uint64_t> &sizes,
         const std::vector<uint8_t> &may_run)
      : dut(device), h_(h), sizes_(sizes), may_run_(may_run), edge_(h.period - h.shift) {}

  // Comes before the inputs of a cycle are driven.
  void wait() {
    if (!h_.enable) return;
    while (!may_run_[edge_++ % h_.period]) {
      std::vector<uint8_t> junk(h_.in_bytes, static_cast<uint8_t>(edge_));
      set(false, CE);
      set(true, CLEAR);
      set(edge_ % 2, M_TREADY);
      put(S_TDATA, junk.data(), h_.in_bytes);
      set(true, S_TVALID);
      set(edge_ % 3, S_TLAST);
      for (size_t n = 0; n < sizes_.size(); n++) {
        std::vector<uint8_t> other(sizes_[n], static_cast<uint8_t>(edge_));
        drive_load(dut, n, other.data(), sizes_[n], true, edge_ % 5);
      }
      dut.settle();
      dut.edge();
    }
    set(true, CE);
    set(false, CLEAR);
    set(false, S_TVALID);
    for (size_t n = 0; n < sizes_.size(); n++) {
      std::vector<uint8_t> none(sizes_[n], kJunk);
      drive_load(dut, n, none.data(), sizes_[n], false, true);
    }
  }

 private:
  Dut &dut;  // the name that the ports are spelled with
  const Header &h_;
  const std::vector<uint64_t> &sizes_;
  const std::vector<uint8_t> &may_run_;
  uint64_t edge_;
};

struct Load {
  uint64_t which, beats, bytes;
  std::vector<uint8_t> data;

  // Drives the first `count` beats, in the cycles in which a source may send.
  void drive(Dut &dut, uint64_t count, const std::vector<uint8_t> &may_send,
             Enable &enable) const {
    std::vector<uint8_t> junk(bytes, kJunk);
    for (uint64_t n = 0, cycle = 0; n < count; cycle++) {
      enable.wait();
      bool offer = may_send[cycle % may_send.size()];
      const uint8_t *beat = offer ? data.data() + n * bytes : junk.data();
      n += offer;
      drive_load(dut, which, beat, bytes, offer, !offer || n == beats);
      dut.settle();
      dut.edge();
    }
    drive_load(dut, which, junk.data(), bytes, false, true);
  }
};

Load receive_load() {
  uint64_t head[3];
  receive(head, sizeof head);
  auto [which, beats, bytes] = head;
  return {which, beats, bytes, receive_bytes(beats * bytes)};
}

void reset(Dut &dut) {
  set(false, ARESETN);
  for (int n = 0; n < 4; n++) {
    dut.settle();
    dut.edge();
  }
  set(true, ARESETN);
}

// Rows, one of them too short and one without an end, and a reset in the midst of all: afterwards
// nothing may remember.
void warm_up(Dut &dut, const Header &h, const std::vector<Load> &loads,
             const std::vector<uint64_t> &sizes, const std::vector<uint8_t> &may_send,
             Enable &enable) {
  for (const Load &load : loads) load.drive(dut, (load.beats + 1) / 2, may_send, enable);
  std::vector<uint8_t> beat(h.in_bytes);
  for (uint64_t n = 0; n < h.warm_cycles; n++) {
    enable.wait();
    set(true, S_TVALID);
    for (size_t byte = 0; byte < beat.size(); byte++) beat[byte] = n * 37 + byte * 11;
    put(S_TDATA, beat.data(), beat.size());
    bool last = ((n + 1) % h.row_beats == 0 || n == h.row_beats * 2) && n < h.row_beats * 3;
    set(last, S_TLAST);
    for (size_t k = 0; k < h.streams; k++) {
      std::vector<uint8_t> other(sizes[k], static_cast<uint8_t>(n));
      drive_load(dut, k, other.data(), sizes[k], true, last);
    }
    set(n % 2, M_TREADY);
    dut.settle();
    dut.edge();
  }
  set(false, S_TVALID);
  set(false, M_TREADY);
  for (size_t k = 0; k < h.streams; k++) {
    std::vector<uint8_t> none(sizes[k], kJunk);
    drive_load(dut, k, none.data(), sizes[k], false, true);
  }
  reset(dut);
}

// Collects beats out and sends them on, at least every second.
class Sink {
 public:
  void take(const std::vector<uint8_t> &beat) {
    data_.insert(data_.end(), beat.begin(), beat.end());
    if (data_.size() >= kFlushBytes) flush();
  }

  void flush() {
    send('d', data_.data(), data_.size());
    data_.clear();
    sent_ = std::chrono::steady_clock::now();
  }

  void live() {
    if (std::chrono::steady_clock::now() - sent_ > std::chrono::seconds(1)) flush();
  }

 private:
  std::vector<uint8_t> data_;
  std::chrono::steady_clock::time_point sent_ = std::chrono::steady_clock::now();
};

// The beats in, block by block.
class Source {
 public:
  Source(size_t bytes, Sink &sink) : bytes_(bytes), sink_(sink) {}

  // The next beat, or nullptr after the last.
  const uint8_t *next() {
    if (at_ == block_.beats && !ended_) {
      // What is out first: the other side need not remember more than a block.
      sink_.flush();
      send('m', nullptr, 0);
      receive(&block_, sizeof block_);
      data_ = receive_bytes(block_.beats * bytes_);
      at_ = 0;
      fed_ += block_.beats;
      if (!block_.beats) ended_ = true;
      else limit_ = block_.limit;
    }
    return ended_ ? nullptr : data_.data() + at_++ * bytes_;
  }

  bool ended() const { return ended_; }
  uint64_t fed() const { return fed_; }
  uint64_t limit() const { return limit_; }

 private:
  size_t bytes_;
  Sink &sink_;
  Block block_{};
  std::vector<uint8_t> data_;
  uint64_t at_ = 0, fed_ = 0, limit_ = 0;
  bool ended_ = false;
};

}  // namespace

int main(int argc, char **argv) {
  // What the design itself prints must not come between the frames.
  output = dup(1);
  dup2(2, 1);
  Header h;
  receive(&h, sizeof h);
  static Dut dut;
  if (argc > 1) dut.open(argv[1]);
  std::vector<Load> loads;
  for (uint64_t n = 0; n < h.loads; n++) loads.push_back(receive_load());
  // Bytes of a beat of every parameter with a stream.
  std::vector<uint64_t> sizes(h.streams);
  receive(sizes.data(), h.streams * sizeof sizes[0]);
  uint64_t beat_bytes = h.in_bytes + 1;
  for (uint64_t size : sizes) beat_bytes += size;
  std::vector<uint8_t> may_send = receive_bytes(h.period), may_take = receive_bytes(h.period);
  if (!h.streams)
    for (const Load &load : loads) sizes.push_back(load.bytes);
  Enable enable(dut, h, sizes, may_send);
  set(true, CE);
  reset(dut);
  warm_up(dut, h, loads, sizes, may_send, enable);
  for (const Load &load : loads) load.drive(dut, load.beats, may_send, enable);

  Result r{};
  Sink sink;
  Source source(beat_bytes, sink);
  std::vector<uint8_t> held(h.out_bytes), now(h.out_bytes), junk(h.in_bytes, kJunk), handshakes;
  // Of the beat that is on its way in: which streams offer their part, and which part is taken.
  const uint8_t *beat = nullptr;
  std::deque<bool> lasts;  // of the beats that are in and not out
  std::vector<bool> started(1 + h.streams), taken(1 + h.streams);
  uint64_t after = 0, phase = 0;
  bool stalled = false, held_last = false;
  // After the last beat it watches some cycles for more.
  while (after < 32 && r.status == kDone) {
    enable.wait();
    bool take = may_take[phase];
    for (size_t n = 0; n <= h.streams; n++) {
      if (!started[n] && may_send[(phase + n * h.shift) % h.period]) {
        if (!beat) beat = source.next();
        started[n] = beat != nullptr;
      }
    }
    bool offer = started[0] && !taken[0], end = beat && beat[beat_bytes - 1];
    put(S_TDATA, offer ? beat : junk.data(), h.in_bytes);
    set(!offer || end, S_TLAST);
    set(offer, S_TVALID);
    const uint8_t *part = beat + (beat ? h.in_bytes : 0);
    for (size_t n = 1; n <= h.streams; n++) {
      bool valid = started[n] && !taken[n];
      std::vector<uint8_t> none(sizes[n - 1], kJunk);
      drive_load(dut, n - 1, valid ? part : none.data(), sizes[n - 1], valid, !valid || end);
      part += beat ? sizes[n - 1] : 0;
    }
    set(take, M_TREADY);
    dut.settle();
    bool valid = is_set(M_TVALID), last = is_set(M_TLAST), ready = is_set(S_TREADY);
    get(M_TDATA, now.data(), h.out_bytes);
    if (r.cycles < h.trace_cycles)
      handshakes.push_back(offer | ready << 1 | valid << 2 | take << 3);
    if (stalled && !valid) r.status = kValidWithdrawn;
    if (stalled && valid && (now != held || last != held_last)) r.status = kPayloadChanged;
    if (valid && take && r.status == kDone) {
      if (r.beats_out == r.beats_in) {
        r.status = kBeatTooMany;
      } else {
        sink.take(now);
        if (!r.beats_out) r.first_out = r.cycles;
        r.last_out = r.cycles;
        r.beats_out++;
        if (last != lasts.front()) r.status = kLastWrong;
        lasts.pop_front();
      }
    }
    stalled = valid && !take;
    held.swap(now);
    held_last = last;
    if (offer && ready) taken[0] = true;
    bool whole = taken[0];
    for (size_t n = 1; n <= h.streams; n++) {
      if (started[n] && !taken[n] && load_ready(dut, n - 1)) taken[n] = true;
      whole = whole && taken[n];
    }
    if (whole) {
      if (!r.beats_in) r.first_in = r.cycles;
      r.beats_in++;
      lasts.push_back(end);
      beat = nullptr;
      std::fill(started.begin(), started.end(), false);
      std::fill(taken.begin(), taken.end(), false);
    }
    dut.edge();
    if (dut.finished() && r.status == kDone) r.status = kFinished;
    r.cycles++;
    if (++phase == h.period) phase = 0;
    if (r.cycles % 4096 == 0) sink.live();
    if (r.beats_out < source.fed()) {
      if (r.status == kDone && r.cycles > source.limit()) r.status = kHangs;
    } else if (source.ended()) {
      after++;
    }
  }
  dut.settle();
  r.saturated = is_set(SATURATED);
  r.framing = is_set(FRAMING_ERROR);
  dut.close();
  sink.flush();
  std::vector<uint8_t> end(sizeof r);
  std::memcpy(end.data(), &r, sizeof r);
  end.insert(end.end(), handshakes.begin(), handshakes.end());
  send('e', end.data(), end.size());
  std::_Exit(0);
}
