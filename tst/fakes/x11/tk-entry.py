"""
A Tk window with an entry; what it holds, and the keys that reach it, is written to the file named first. With "keys" after it
keys are written down and have no effect.
"""
import json
import os
import sys
import tkinter

path = sys.argv[1]
seen = {"text": "", "keys": [], "pressed": 0, "focused": False}


def save():
    with open(path + ".part", "w") as out:
        json.dump(seen, out)
    os.rename(path + ".part", path)


def changed(*_):
    seen["text"] = text.get()
    save()


def key(event):
    seen["keys"] = (seen["keys"] + [event.keysym])[-200:]
    seen["pressed"] += 1
    save()
    return "break" if len(sys.argv) > 2 else None


def focus(value):
    seen["focused"] = value
    save()


root = tkinter.Tk()
root.title("tk-entry")
root.geometry("500x60+640+60")
text = tkinter.StringVar()
text.trace_add("write", changed)
entry = tkinter.Entry(root, textvariable=text, width=60)
entry.pack()
entry.bindtags(("seen", *entry.bindtags()))
root.bind_class("seen", "<KeyPress>", key)
entry.bind("<FocusIn>", lambda _: focus(True))
entry.bind("<FocusOut>", lambda _: focus(False))
save()
root.wait_visibility()
entry.focus_force()
root.mainloop()
