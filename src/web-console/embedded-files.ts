/** A file of the console in a build, compressed and in base64. */
export type EmbeddedFile = {
  readonly path: string
  readonly type: string
  readonly br: string
  readonly zstd: string
  readonly gzip: string
}

/** Replaced by `scripts/build.ts`. Null from source: the checkout builds its console itself. */
export const embeddedFiles: readonly EmbeddedFile[] | null = null
