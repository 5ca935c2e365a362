"""What tests use to run the real thing: screens, cameras, streams, processes, contexts, and second opinions in
NumPy.
"""
