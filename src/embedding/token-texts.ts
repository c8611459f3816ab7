import cl100k from 'gpt-tokenizer/data/cl100k_base.tiktoken' with { type: 'file' }
import { AppError } from '#lib/errors.ts'
import { readOwnFile } from '#lib/own-program.ts'

/** The tokenizer of OpenAI's embedding models, with which SDKs encode before they know the model. */
const encoding = 'cl100k_base'

/**
 * The text of an array of tokens. Upstreams with tokenizers of their own would read other words in it, so
 * all of them get the text. Throws `invalid_request` for `param`.
 */
export async function decodeTokens(tokens: readonly number[], param: string): Promise<string> {
  vocabulary ??= loadVocabulary()
  const words = await vocabulary
  const parts = tokens.map((token, at) => {
    const word = words[token]
    if (word !== undefined) return Buffer.from(word, 'base64')
    throw new AppError('invalid_request', `${param}[${at}] is not a token of ${encoding}.`, {
      param: `${param}[${at}]`,
    })
  })
  return Buffer.concat(parts).toString()
}

let vocabulary: Promise<readonly string[]> | undefined

/** The bytes of each token in base64. Line n of the file is `<base64> n`. */
async function loadVocabulary(): Promise<readonly string[]> {
  const text = new TextDecoder().decode(await readOwnFile(cl100k))
  const lines = text.trimEnd().split('\n')
  return lines.map((line) => line.slice(0, line.indexOf(' ')))
}
