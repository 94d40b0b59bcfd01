"""Tests of real windows on an X server, and the programs that they run."""
