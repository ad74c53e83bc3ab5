"""What the documentation shows is run: `python -m tests.docs PAGE...` writes outputs anew."""
