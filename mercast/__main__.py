"""`python -m mercast`: the command line."""

from mercast.command_line import main

main()
