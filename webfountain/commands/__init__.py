"""The commands: one module for each, or for a pair that belongs together.

A command parses its options (`options`), calls a function of a package below, and prints the result (`printing`).
Errors are raised; `cli.main` turns them into one line and an exit status. The commands of the laboratory are in
`lab.commands`.
"""
