"""Files and threads: recordings, images and .npy files go in and come out as RGBA frames with time stamps."""
