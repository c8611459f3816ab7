import { loadConfig } from '#config/load.ts'
import {
  createExtraction,
  type Extraction,
  type ExtractionLimits,
} from '#retrieval/extraction/extraction.ts'
import { UnreadableFile } from '#retrieval/extraction/unreadable.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** The default extraction with other limits. */
export function extractionWith(limits: Partial<ExtractionLimits> = {}): Extraction {
  return createExtraction({ limits: { ...loadConfig({}).retrieval, ...limits }, log: quietLog })
}

const reading = extractionWith()
const never = new AbortController().signal

export function extract(
  content: Uint8Array | string,
  {
    name = 'file',
    mimeType = '',
    extraction = reading,
    signal = never,
    pageImages = false,
  }: {
    name?: string
    mimeType?: string
    extraction?: Extraction
    signal?: AbortSignal
    pageImages?: boolean
  } = {},
) {
  const blob = new Blob([typeof content === 'string' ? content : new Uint8Array(content)])
  const file = { name, mimeType, bytes: blob.size }
  return extraction.extract(file, async () => blob.stream(), signal, { pageImages })
}

/** The code of the `UnreadableFile`. */
export async function refusalOf(
  content: Uint8Array | string,
  options?: Parameters<typeof extract>[1],
): Promise<string> {
  try {
    const { text } = await extract(content, options)
    return `read: ${text.slice(0, 100)}`
  } catch (error) {
    if (error instanceof UnreadableFile) return error.code
    throw error
  }
}
