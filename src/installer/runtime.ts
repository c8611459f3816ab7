import type { InstallIo } from '#install-packages.ts'
import { AppError } from '#lib/errors.ts'

/** Native code that local models or decoders need, from the package registry, in a folder of its own. */
export type LocalRuntime = {
  readonly name: string
  /** A noun phrase, as in "installs …". */
  readonly purpose: string
  /** The command that installs it, with its default model if it has one. */
  readonly command: string
  readonly package: string
  /** The only supported version. */
  readonly version: string
  readonly license: string
  /** On disk. */
  readonly bytes: number
  /** Unpacked, before parts are removed that this machine does not need. */
  readonly downloadBytes: number
  readonly folder: string
  /** `name@version` for this platform; empty: not supported. */
  readonly packages: readonly string[]
  readonly installedVersion: string | null
  /** Whether the configuration uses it. */
  readonly isEnabled: boolean
  /** Removes what is not needed from the installed folder; throws if the runtime cannot work. */
  readonly finish?: (folder: string) => void
  /** What it runs by default, in the hub; `files` are globs. */
  readonly model: {
    readonly repository: string
    readonly files: readonly string[]
    readonly bytes: number
  } | null
}

export type RuntimeState = 'installed' | 'missing' | 'outdated' | 'unsupported'

export function stateOf({ installedVersion, version, packages }: LocalRuntime): RuntimeState {
  if (installedVersion === version) return 'installed'
  if (packages.length === 0) return 'unsupported'
  return installedVersion === null ? 'missing' : 'outdated'
}

/** The task of a download that installs a runtime. */
export type RuntimeTask = {
  readonly kind: 'runtime'
  readonly runtime: string
  /** Readable: `packages:name@version`. */
  readonly source: string
  /** Delete the data on cancellation. */
  readonly isDiscarded?: boolean
}

/** The name of its download; no model can have it. */
export function downloadName(runtime: string): string {
  return `runtime:${runtime}`
}

export function runtimeNotFound(name: string): AppError {
  return new AppError('not_found', `There is no runtime "${name}".`, { param: 'name' })
}

/** The runtimes of this machine, and how one is installed. */
export type Runtimes = {
  list(): readonly LocalRuntime[]
  install(runtime: LocalRuntime, io: InstallIo): Promise<void>
}
