// Finds the words in which two texts differ.

const UNSPACED = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"]
  .map((script) => `\\p{Script=${script}}`)
  .join("");
const BETWEEN = new RegExp(`(\\s+|[${UNSPACED}]\\p{M}*)`, "u");

// In scripts without spaces each letter with its marks is a word.
export const wordsOf = (text) => text.split(BETWEEN).filter(Boolean);

// For each part of `words` whether `others` lacks it, by the longest common
// subsequence of both.
export function differing(words, others) {
  const lengths = Array.from({ length: words.length + 1 }, () =>
    new Uint32Array(others.length + 1),
  );
  for (let i = words.length - 1; i >= 0; i--)
    for (let j = others.length - 1; j >= 0; j--)
      lengths[i][j] =
        words[i] === others[j]
          ? lengths[i + 1][j + 1] + 1
          : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const differ = words.map(() => true);
  for (let i = 0, j = 0; i < words.length && j < others.length; ) {
    if (words[i] === others[j]) {
      differ[i++] = false;
      j++;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return differ;
}
