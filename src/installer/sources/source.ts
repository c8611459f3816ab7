import type { InstallerSettings } from '#installer/config.ts'
import type { AppError } from '#lib/errors.ts'
import { resolveHub } from './hub.ts'
import { resolveLocal } from './local.ts'
import { resolveOci } from './oci.ts'
import { createOrigin, type OriginDeps } from './origin.ts'
import { badSource, rejectConflictingPaths } from './select-files.ts'
import { resolveUrl } from './url.ts'

/** Where a model comes from, as requested. Credentials are part of the configuration. */
export type Source =
  /** A repository of a model hub: `org/name`, at a branch, tag or commit; `files` are globs. */
  | {
      readonly kind: 'hub'
      readonly repository: string
      readonly revision: string
      readonly files: readonly string[]
    }
  /** One file. `sha256` is in hex; null: the file is accepted unverified. */
  | { readonly kind: 'url'; readonly url: string; readonly sha256: string | null }
  /** A container registry: `registry/repository:tag` or `@sha256:…`. */
  | { readonly kind: 'oci'; readonly reference: string }
  /** A file or folder of this machine, inside a folder that the configuration allows. */
  | { readonly kind: 'local'; readonly path: string }
  /** A configured upstream that downloads models itself. Nothing is stored here. */
  | { readonly kind: 'upstream'; readonly upstream: string; readonly model: string }

/** The current contents of a source. */
export type ResolvedSource = {
  /** A commit, digest or entity tag that identifies the contents; null: unknown. */
  readonly revision: string | null
  readonly files: readonly RemoteFile[]
}

export type RemoteFile = {
  /** Its place in the model's folder: relative, normalised, with `/`. */
  readonly path: string
  readonly bytes: number | null
  /** In hex, if the source publishes it. */
  readonly sha256: string | null
  /** SHA-1 of the git object of its content, in hex, if the source publishes that instead. */
  readonly gitSha1?: string
  readonly from: { readonly url: string } | { readonly localPath: string }
}

export type SourceContext = {
  readonly signal: AbortSignal
  readonly logLine: LogLine
  /** Whether files are accepted that can run code when loaded (pickle). */
  readonly allowsUnsafe: boolean
}

/** Adds a line to the download's log, which users read: no secrets, no private addresses. */
export type LogLine = (level: 'info' | 'warn' | 'error', message: string) => void

/**
 * Lists the contents of a source. Throws `unprocessable` (`bad_source`, `no_files`, `choose_files`,
 * `unsafe_file_type`), `permission_denied` (`host_not_allowed`), `not_found`,
 * `source_auth_required`, and `upstream_*` if the source is unreachable or invalid.
 */
export type ResolveSource = (
  source: Exclude<Source, { kind: 'upstream' }>,
  context: SourceContext,
) => Promise<ResolvedSource>

/** Whether a published hash will verify the bytes. */
export function hasKnownHash({ sha256, gitSha1, bytes }: RemoteFile): boolean {
  return sha256 !== null || (gitSha1 !== undefined && bytes !== null)
}

/** Whether a retry would fail too, as after any refusal but that of a busy source. */
export function isPermanent({ kind, status }: AppError): boolean {
  if (kind === 'upstream_refused') return true
  return status < 500 && kind !== 'request_timeout' && kind !== 'rate_limit_exceeded'
}

export function createSources(settings: InstallerSettings, deps: OriginDeps): ResolveSource {
  const origin = createOrigin(settings, deps)
  const resolve: ResolveSource = (source, context) => {
    switch (source.kind) {
      case 'hub':
        return resolveHub({ settings, origin }, source, context)
      case 'url':
        return resolveUrl({ settings, origin }, source, context)
      case 'oci':
        return resolveOci(origin, source, context)
      case 'local':
        return resolveLocal(settings, source, context)
    }
  }
  return async (source, context) => {
    const resolved = await resolve(source, context)
    const { filesMax, fileBytesMax } = settings
    rejectConflictingPaths(resolved.files, filesMax)
    const large = resolved.files.find(({ bytes }) => bytes !== null && bytes > fileBytesMax)
    if (large === undefined) return resolved
    throw badSource(`"${large.path}" has ${large.bytes} bytes; the limit is ${fileBytesMax}.`)
  }
}
