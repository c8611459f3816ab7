import { resolveHub } from './hub.ts'
import { resolveLocal } from './local.ts'
import { resolveOci } from './oci.ts'
import { createOrigin, type OriginDeps, type OriginSettings } from './origin.ts'
import { badSource, rejectConflictingPaths } from './select-files.ts'
import type { ResolveSource } from './source.ts'
import { resolveUrl } from './url.ts'

/** From the `installer` section of the configuration. */
export type SourceSettings = OriginSettings & {
  readonly localFolders: readonly string[]
  readonly filesMax: number
  readonly fileBytesMax: number
}

export function createSources(settings: SourceSettings, deps: OriginDeps): ResolveSource {
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
