import type { Tokenizer } from '@huggingface/tokenizers'

/** One input of the model. */
export type TokenIds = {
  readonly ids: readonly number[]
  /** 0 for the first text of a pair, 1 for the second, in models that distinguish them. */
  readonly typeIds: readonly number[]
  /** Fills shorter inputs of a run; the mask excludes it. */
  readonly padId: number
}

/** A word that every vocabulary has or splits. */
const probe = 'a'
/** Of a query in a pair; the rest is for the document. */
const queryShareMax = 0.5

/** Turns texts into inputs of at most `tokensMax` tokens. */
export function createTokenInput(tokenizer: Tokenizer, tokensMax: number) {
  const bare = (text: string) => tokenizer.encode(text, { add_special_tokens: false }).ids
  const { head, tail } = specialTokens(tokenizer.encode(probe).ids, bare(probe))
  const padId = padIdOf(tokenizer)
  const contentMax = tokensMax - head.length - tail.length

  return {
    /** Long texts have several windows without overlap; at least one. */
    windowsOf(text: string): readonly TokenIds[] {
      const content = bare(text)
      const windows: TokenIds[] = []
      for (let at = 0; at === 0 || at < content.length; at += contentMax) {
        const ids = [...head, ...content.slice(at, at + contentMax), ...tail]
        windows.push({ ids, typeIds: [], padId })
      }
      return windows
    },

    /** A query and a document, of which at most `documentTokensMax` tokens are read. */
    pairOf(query: string, document: string, documentTokensMax: number): TokenIds {
      const queryMax = Math.floor(tokensMax * queryShareMax)
      const short = shorten(query, bare(query).length, queryMax)
      const documentTokens = bare(document).length
      const encoding = tokenizer.encode(short, {
        text_pair: document,
        return_token_type_ids: true,
      })
      const excess = Math.max(
        encoding.ids.length - tokensMax,
        documentTokens - documentTokensMax,
        0,
      )
      // The document is last; the end token after it stays.
      const end = encoding.ids.length - excess - tail.length
      const cut = (ids: readonly number[]) => [
        ...ids.slice(0, end),
        ...ids.slice(ids.length - tail.length),
      ]
      return { ids: cut(encoding.ids), typeIds: cut(encoding.token_type_ids), padId }
    },
  }
}

/** What the tokenizer adds before and after a text. */
function specialTokens(whole: readonly number[], content: readonly number[]) {
  const start = whole.findIndex((_, at) => content.every((id, index) => whole[at + index] === id))
  if (start === -1) return { head: [], tail: [] }
  return { head: whole.slice(0, start), tail: whole.slice(start + content.length) }
}

function padIdOf(tokenizer: Tokenizer): number {
  for (const token of ['<pad>', '[PAD]']) {
    const id = tokenizer.token_to_id(token)
    if (id !== undefined) return id
  }
  return 0
}

/** A text of about `tokensMax` tokens; queries are rarely longer. */
function shorten(text: string, tokens: number, tokensMax: number): string {
  return tokens <= tokensMax ? text : text.slice(0, Math.floor((text.length * tokensMax) / tokens))
}
