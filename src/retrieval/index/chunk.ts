import type { Transaction } from '#jobs/jobs.ts'

/** A passage of a file in an index. */
export type Chunk = {
  /** Position in the file, from 0. */
  readonly ordinal: number
  readonly text: string
  /** From 1; null: the file has no pages. */
  readonly page: number | null
  /** Position in the text of the file, in characters. */
  readonly start: number
  readonly end: number
}

export type EmbeddedChunk = Chunk & { readonly vector: Float32Array }

export type IndexSpec = {
  readonly model: string
  readonly dims: number
  readonly chunkTokensMax: number
  readonly chunkOverlapTokens: number
}

export type ChunkIndex = IndexSpec & {
  readonly id: number
  readonly state: 'building' | 'active' | 'warm' | 'dropping'
}

/** The tables of passages, one per index. */
export type ChunkTables = {
  /** Finds or creates the active index of this specification. */
  provide(spec: IndexSpec): Promise<ChunkIndex>
  /** Creates an index for a reindex. */
  create(spec: IndexSpec, transaction?: Transaction): Promise<ChunkIndex>
  find(id: number): Promise<ChunkIndex | undefined>
  /** Replaces all passages of a file. */
  replace(
    transaction: Transaction,
    index: ChunkIndex,
    fileId: string,
    chunks: readonly EmbeddedChunk[],
  ): Promise<void>
  /** Deletes the index and its table. */
  drop(id: number): Promise<void>
}
