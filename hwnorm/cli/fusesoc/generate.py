"""What FuseSoC starts: hands its request to the command line of hwnorm."""

import sys

from hwnorm.cli import main

if __name__ == "__main__":
    sys.exit(main(["fusesoc", *sys.argv[1:]]))
