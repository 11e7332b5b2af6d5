"""
A GTK window with an entry and a text view; what they hold, and what reaches them, is written to the file named first. With
"keys" after it keys are written down and have no effect.
"""
import json
import os
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk

path = sys.argv[1]
seen = {"text": "", "selected": "", "clicks": [], "keys": [], "pressed": 0, "focused": False}


def save(*_):
    with open(path + ".part", "w") as out:
        json.dump(seen, out)
    os.rename(path + ".part", path)


def changed(entry):
    seen["text"] = entry.get_text()
    save()


def key(_, event):
    seen["keys"] = (seen["keys"] + [Gdk.keyval_name(event.keyval) or hex(event.keyval)])[-200:]
    seen["pressed"] += 1
    save()
    return len(sys.argv) > 2


def click(_, event):
    kinds = {Gdk.EventType.BUTTON_PRESS: 1, Gdk.EventType._2BUTTON_PRESS: 2, Gdk.EventType._3BUTTON_PRESS: 3}
    seen["clicks"] = (seen["clicks"] + [[event.button, kinds.get(event.type, 0)]])[-50:]
    save()


def selection(buffer, *_):
    bounds = buffer.get_selection_bounds()
    seen["selected"] = buffer.get_text(*bounds, True) if bounds else ""
    save()


window = Gtk.Window(title="gtk-entry")
window.set_default_size(500, 300)
window.move(60, 60)
box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
entry = Gtk.Entry()
view = Gtk.TextView()
view.get_buffer().set_text("first line\nsecond line\nthird line\n")
view.get_buffer().connect("mark-set", selection)
view.connect("button-press-event", click)
entry.connect("changed", changed)
window.connect("key-press-event", key)
box.pack_start(entry, False, False, 0)
box.pack_start(view, True, True, 0)
window.add(box)
window.show_all()
entry.grab_focus()


def focus(*_):
    seen["focused"] = window.is_active()
    origin = view.get_window(Gtk.TextWindowType.WIDGET).get_origin()
    seen["view"] = [origin[1], origin[2]]
    save()
    return True


window.connect("notify::is-active", focus)
GLib.timeout_add(200, focus)
Gtk.main()
