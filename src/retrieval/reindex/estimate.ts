import type { IndexSpec } from '#retrieval/index/chunk.ts'
import type { Choice } from './choose.ts'
import { countFiles } from './file-store.ts'
import type { Probe } from './probe.ts'
import type { ReindexEstimate } from './reindex.ts'
import type { Handle } from './store.ts'
import { measurePassages } from './verification-store.ts'

/** Of prose in most languages. */
const charsPerToken = 3.6

/** From what the source has, and how fast the model was when it was tried. */
export async function estimate(
  handle: Handle,
  { sourceIndexId, source, target, collectionIds }: Choice,
  { dims, charsPerS }: Probe,
): Promise<ReindexEstimate> {
  const total = await countFiles(handle, collectionIds)
  const { passages, chars } = await measurePassages(handle, sourceIndexId, collectionIds)
  const embeddedChars = passages * chars * (ownShare(source) / ownShare(target))
  return {
    total,
    tokens: Math.ceil(embeddedChars / charsPerToken),
    seconds: Math.ceil(embeddedChars / charsPerS),
    dims,
  }
}

/** What of a passage is not said in the one before it as well. */
function ownShare({ chunkTokensMax, chunkOverlapTokens }: IndexSpec): number {
  return 1 - chunkOverlapTokens / chunkTokensMax
}
