"""Webs on loopback for the tests: recorded pages (`timeweb.py`) and misbehaving servers (`hostile.py`)."""
