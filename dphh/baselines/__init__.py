"""What dphh is compared with, in tests and documents. Nothing here makes a release."""
