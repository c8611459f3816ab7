import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The path of a new `tokenizer.json` in which every word and every mark is one token. */
export function writeWordTokenizer(): string {
  return writeTokenizerFile(
    JSON.stringify({
      version: '1.0',
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: 'Whitespace' },
      post_processor: null,
      decoder: null,
      model: { type: 'WordLevel', vocab: { '[UNK]': 0 }, unk_token: '[UNK]' },
    }),
  )
}

/** The path of a new file with this text. */
export function writeTokenizerFile(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sluice-tokenizer-')), 'tokenizer.json')
  writeFileSync(path, text)
  return path
}
