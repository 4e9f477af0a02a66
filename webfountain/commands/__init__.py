"""The commands: one module for each, or for a pair that belongs together.

A command parses its options (`options`), calls a function of another package, and prints the result (`printing`).
`cli.main` turns an error into one line and an exit status. The commands of the laboratory are in `lab.commands`.
"""
