"""Runnable study definitions and design points; no algorithms."""
