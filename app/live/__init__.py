"""`texelflow live`: shows and records the pictures of a camera as they come.

Where things are added:

    a setting   a field in settings/settings.py, which is its option, its line in the file and its row in the panel;
                what it is for in session/derived.py
    an effect   a name in frame/looks/effects.py, its branch in composite.frag, its definition in
                tests/helpers/pictures.py
    a key       a row in window/keys.py; if it does more than switch a setting on and off, a line in
                session/controller.py
    a source    a file in capture/ with what capture/source.py asks of it, a line in capture/opener.py
    an output   what outputs/__init__.py says, a row in session/controller.py, a setting
"""
