/** All printable ASCII characters. */
export const ASCII = Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index)).join("");

/** Each letter of Latin-1. */
export const LATIN_1 = Array.from({ length: 0x100 - 0xa0 }, (_, index) => String.fromCharCode(0xa0 + index))
  .filter((character) => /\p{L}/u.test(character))
  .join("");

/** Of scripts whose characters are on no keymap here. */
export const SAMPLES = [
  "Καλημέρα κόσμε ΐΰς",
  "Привет, мир! Ёё Щщ",
  "مرحبا بالعالم",
  "नमस्ते दुनिया",
  "你好世界 日本語テスト 한국어",
  "😀👍🏽👩‍💻🇩🇪🫠",
  "€ – „ß“ … ½ ™",
];

export const ALL = [ASCII, LATIN_1, ...SAMPLES];

/** What is rarer: cases that are no pair of letters, marks, controls of layout, private and last code points. */
export const RARE = [
  "e\u0301o\u0308 ǅǆǄ ϐ ſ İı ẞß ﬁ ŉ ǰ ΰ ᾳᾼ Ⓐⓐ ԱաႠⴀ 𐐀𐐨 Ꭰꭰ",
  "ก็น้ำ שָׁלוֹם 각힣ㄱ Ѣѣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
  "∀∂∈ℝ≡∞↻ ┐┼╔░►☺♀ ¡¢£¤¥¦§¨©ª«¬®¯°±²³´µ¶·¸¹º»¼½¾¿×÷",
  "a\u00a0b\u200dc\u00add\u200be\u2028f\u202eg\ufeffh\ue000i\ufffdj\u{10fffd}k",
];
