"""Keeps compiled models on disk, and checks them when they are loaded again."""
