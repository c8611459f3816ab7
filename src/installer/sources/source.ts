import type { AppError } from '#lib/errors.ts'

/** Where a model comes from, as it was asked for; credentials are of the configuration. */
export type Source =
  /** A repository of a model hub: `org/name`, at a branch, tag or commit; `files` are globs. */
  | {
      readonly kind: 'hub'
      readonly repository: string
      readonly revision: string
      readonly files: readonly string[]
    }
  /** One file. `sha256` is in hex; null: whatever comes is taken, and known as not verified. */
  | { readonly kind: 'url'; readonly url: string; readonly sha256: string | null }
  /** `registry/repository:tag` or `@sha256:…`, as container registries keep models. */
  | { readonly kind: 'oci'; readonly reference: string }
  /** A file or a folder of this machine, inside of a folder that the configuration allows. */
  | { readonly kind: 'local'; readonly path: string }
  /** A configured upstream that brings models to itself. Nothing is stored here. */
  | { readonly kind: 'upstream'; readonly upstream: string; readonly model: string }

/** What a source consists of at this moment. */
export type Resolved = {
  /** A commit, a digest, an entity tag: files of the same revision are the same; null: unknown. */
  readonly revision: string | null
  readonly files: readonly RemoteFile[]
}

export type RemoteFile = {
  /** Where it is put in the model's folder: relative, normalised, with `/`. */
  readonly path: string
  readonly bytes: number | null
  /** In hex, where the source vouches for it. */
  readonly sha256: string | null
  /** Of git's object of this content, in hex, where the source vouches by that instead. */
  readonly gitSha1?: string
  readonly from: { readonly url: string } | { readonly localPath: string }
}

export type SourceContext = {
  readonly signal: AbortSignal
  readonly say: Say
  /** Whether files may be taken that can run code when they are loaded (pickle). */
  readonly allowsUnsafe: boolean
}

/** A line for the log that the download's people read: no secrets, no private addresses. */
export type Say = (level: 'info' | 'warn' | 'error', message: string) => void

/**
 * Asks a source what it has. Fails with an `AppError`: `unprocessable` (codes `bad_source`,
 * `no_files`, `choose_files`, `unsafe_file_type`), `permission_denied` (`host_not_allowed`), `not_found`,
 * `source_auth_required`, `upstream_*` where the source cannot be reached or answers nonsense.
 */
export type Resolve = (
  source: Exclude<Source, { kind: 'upstream' }>,
  context: SourceContext,
) => Promise<Resolved>

/** What went wrong for good: another try would go wrong too. */
export function isFinal(error: AppError): boolean {
  return (
    error.status < 500 && error.kind !== 'request_timeout' && error.kind !== 'rate_limit_exceeded'
  )
}
