"""The commands of the laboratory: evolution, simulate, rank, plan, demo."""
