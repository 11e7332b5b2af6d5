import type { KnownFault } from "../../src/computer/skill.js";

/**
 * What the pinned version is measured to answer wrongly on a Linux desktop. A test does each of these on the real daemon, and
 * fails once it is answered right: then it goes from here.
 */
export const KNOWN_FAULTS: readonly KnownFault[] = [
  {
    id: "click-outside",
    tools: ["click"],
    wrong:
      '`click` with `scope: "desktop"` answers a point outside of the screen as sent, and clicks at the edge of the screen.',
    instead: [
      { tools: ["computer_click"], text: "`computer_click` refuses such a point." },
      { tools: ["get_screen_size"], text: "Hold the point to `get_screen_size` first." },
      { text: "Hold the point to the size of the display first." },
    ],
  },
  {
    id: "capital-letter",
    tools: ["press_key"],
    wrong: '`press_key` with `scope: "desktop"` and a capital letter presses the small one.',
    instead: [{ text: 'Name the small letter, with `modifiers: ["shift"]`.' }],
  },
  {
    id: "two-keys",
    tools: ["hotkey"],
    wrong:
      '`hotkey` with `scope: "desktop"` and two keys that are no modifiers answers that it pressed both, and presses the last alone.',
    instead: [
      { tools: ["computer_key"], text: "Press them one after the other with `computer_key`." },
      { tools: ["press_key"], text: "Press them one after the other with `press_key`." },
      { text: "Name one key beside the modifiers." },
    ],
  },
  {
    id: "line-break",
    tools: ["browser_type"],
    wrong:
      "`browser_type` counts a line break at the end of its text as typed, and the page gets none: nothing is sent off by it.",
    instead: [
      {
        tools: ["computer_key"],
        text: 'Leave it out, and press `["Enter"]` with `computer_key` once a picture shows the focus in the field.',
      },
      {
        tools: ["press_key"],
        text: 'Leave it out, and press `enter` with `press_key` and `scope: "desktop"` once a picture shows the focus in the field.',
      },
      { text: "Leave it out, and click what sends the form off." },
    ],
  },
  {
    id: "key-codes",
    tools: ["browser_type"],
    wrong:
      '`browser_type` with `mode: "keystrokes"` answers its keys as delivered, and each comes with `keyCode` 0: a page that looks at that sees no Enter and no letter.',
    instead: [
      {
        tools: ["computer_click", "computer_type"],
        text: "Where a page doesn't react, click into the field with `computer_click` and write with `computer_type`.",
      },
      {
        tools: ["click", "type_text"],
        text: 'Where a page doesn\'t react, click into the field and write with `type_text` and `scope: "desktop"`.',
      },
      { text: "Where a page doesn't react, don't type the same again that way." },
    ],
  },
  {
    id: "click-opens-dialog",
    tools: ["browser_click"],
    wrong:
      "`browser_click` on what opens a dialog of the page (an alert, a question) is answered as failed or refused after 20 to 40 seconds, and the page did get the click.",
    instead: [
      {
        tools: ["computer_click"],
        text: "Click such things with `computer_click`. After such an answer look first, and don't click again because its hint says so.",
      },
      { text: "After such an answer look first, and don't click again because its hint says so." },
    ],
  },
  {
    id: "dialog-out-of-reach",
    tools: ["browser_dialog"],
    wrong:
      "`browser_dialog` doesn't see a dialog that was opened so: it refuses after 20 seconds, like everything else on that page until the dialog is gone.",
    instead: [
      {
        tools: ["computer_key"],
        text: 'Close it with `computer_key`: `["Enter"]` says yes to it, `["Escape"]` no. Then the page can be used again.',
      },
      {
        tools: ["press_key"],
        text: 'Close it with `press_key` and `scope: "desktop"`: `enter` says yes to it, `escape` no. Then the page can be used again.',
      },
      { text: "Somebody who has a keyboard has to close it." },
    ],
  },
];
