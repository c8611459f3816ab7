import { resolveHub } from './hub.ts'
import { resolveLocal } from './local.ts'
import { resolveOci } from './oci.ts'
import { createOrigin, type OriginSettings, type OriginWorld } from './origin.ts'
import { resolveUrl } from './plain-url.ts'
import { badSource, refuseConflicts } from './select-files.ts'
import type { Resolve, Resolved } from './source.ts'

/** Of the section `installer` of the configuration. */
export type SourceSettings = OriginSettings & {
  readonly localFolders: readonly string[]
  readonly filesMax: number
  readonly fileBytesMax: number
}

/** Whatever kind of source it is, what it consists of keeps the same rules in the end. */
export function createSources(settings: SourceSettings, world: OriginWorld): Resolve {
  const origin = createOrigin(settings, world)
  const resolve: Resolve = (source, context) => {
    switch (source.kind) {
      case 'hub':
        return resolveHub({ settings, origin }, source, context)
      case 'url':
        return resolveUrl({ settings, origin }, source, context)
      case 'oci':
        return resolveOci({ origin }, source, context)
      case 'local':
        return resolveLocal(settings, source, context)
    }
  }
  return async (source, context) => {
    const resolved = await resolve(source, context)
    checkFiles(resolved, settings)
    return resolved
  }
}

function checkFiles({ files }: Resolved, { filesMax, fileBytesMax }: SourceSettings): void {
  refuseConflicts(files, filesMax)
  const long = files.find(({ bytes }) => bytes !== null && bytes > fileBytesMax)
  if (long !== undefined) {
    throw badSource(`"${long.path}" has ${long.bytes} bytes; ${fileBytesMax} are allowed.`)
  }
}
