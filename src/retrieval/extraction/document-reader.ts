import type { ExtractedDocument, Extraction } from './extraction.ts'
import type { TextWarning } from './gaps.ts'
import { UnreadableFile } from './unreadable.ts'

type RequestDocument = {
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
  /** Identifies the content, in hex. */
  readonly sha256: string
}

/** The text of a document, or why there is none. */
export type ReadDocument =
  | ({ readonly text: string; readonly images: readonly DocumentImage[] } & Warnings)
  | ({ readonly reason: string } & Warnings)

type Warnings = { readonly warnings: readonly TextWarning[] }
/** A page without text, as JPEG. */
type DocumentImage = { readonly page: number; readonly base64: string }

/** Documents are sent again with each turn of a conversation, so the latest texts are kept. */
const cachedCharsMax = 16_777_216

export type DocumentReader = ReturnType<typeof createDocumentReader>

/** Reads the documents of requests to models, in the same jail as those of collections. */
export function createDocumentReader(extraction: Pick<Extraction, 'extract' | 'extractorOf'>) {
  /** The least recently used first. */
  const cache = new Map<string, ReadDocument>()
  let cachedChars = 0

  const forget = (key: string) => {
    const known = cache.get(key)
    if (known === undefined) return
    cachedChars -= charsOf(known)
    cache.delete(key)
  }
  const keep = (key: string, document: ReadDocument) => {
    forget(key)
    cache.set(key, document)
    cachedChars += charsOf(document)
    for (const oldest of cache.keys()) {
      if (cachedChars <= cachedCharsMax) break
      forget(oldest)
    }
  }
  return {
    /** Rejects if the text cannot be read now: the file is not the cause. */
    async read(
      file: RequestDocument,
      open: () => Promise<ReadableStream<Uint8Array>>,
      { signal, pageImages }: { signal: AbortSignal; pageImages: boolean },
    ): Promise<ReadDocument> {
      const key = `${file.sha256} ${extraction.extractorOf(file)} ${pageImages}`
      const known = cache.get(key)
      if (known !== undefined) {
        keep(key, known)
        return known
      }
      const document = await readOnce(() => extraction.extract(file, open, signal, { pageImages }))
      keep(key, document)
      return document
    },
  }
}

async function readOnce(extract: () => Promise<ExtractedDocument>): Promise<ReadDocument> {
  try {
    const { text, images, warnings } = await extract()
    return {
      text,
      warnings,
      images: images.map(({ page, content }) => ({
        page,
        base64: Buffer.from(content).toString('base64'),
      })),
    }
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error
    return { reason: error.message, warnings: error.warnings }
  }
}

/** What an entry costs besides its text. */
const entryChars = 256

function charsOf(document: ReadDocument): number {
  if (!('text' in document)) return entryChars
  const images = document.images.reduce((sum, { base64 }) => sum + base64.length, 0)
  return entryChars + document.text.length + images
}
