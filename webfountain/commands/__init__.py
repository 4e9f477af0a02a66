"""The commands, one module per purpose. Each parses its options, calls a function of a room below, and prints.

An option is parsed in one place: what several commands take is in `options`. A command raises what goes wrong;
`cli.main` turns it into a line and an exit status.
"""
