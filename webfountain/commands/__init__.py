"""The commands of webfountain.

A module has one command, or a few similar ones.

A command parses its options (`options`), calls a function of another package, and prints the result (`printing`).
`cli.main` turns an error into one line and an exit status. The commands of `webfountain lab` are in `lab.commands`.
"""
