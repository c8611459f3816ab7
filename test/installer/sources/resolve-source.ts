import { loadConfig } from '#config/load.ts'
import type { InstallerSettings } from '#installer/config.ts'
import type { ResolvedSource, Source } from '#installer/sources/source.ts'
import { createSources } from '#installer/sources/source.ts'
import { AppError } from '#lib/errors.ts'
import { resolveHost } from '#outbound/resolve.ts'

const sourceSettings: InstallerSettings = {
  ...loadConfig({}).installer,
  hubUrl: 'https://hub.example',
  hosts: ['127.0.0.1', 'localhost'],
  ports: [],
  privateHosts: true,
  answerMs: 5_000,
  filesMax: 100,
  fileBytesMax: 1_000_000,
}

export type Resolving = {
  readonly resolved: ResolvedSource
  readonly lines: readonly string[]
}

type AnySource = Exclude<Source, { kind: 'upstream' }>
type More = { settings?: Partial<InstallerSettings>; allowsUnsafe?: boolean; signal?: AbortSignal }

export async function resolveSource(source: AnySource, more: More = {}): Promise<Resolving> {
  const { settings, allowsUnsafe = false, signal = new AbortController().signal } = more
  const resolve = createSources({ ...sourceSettings, ...settings }, { fetch, resolve: resolveHost })
  const lines: string[] = []
  const logLine = (_: string, line: string) => void lines.push(line)
  return { resolved: await resolve(source, { signal, logLine, allowsUnsafe }), lines }
}

/** The error code and message. */
export async function refusalOf(source: AnySource, more: More = {}): Promise<string> {
  try {
    const { resolved } = await resolveSource(source, more)
    return `it was resolved: ${JSON.stringify(resolved)}`
  } catch (error) {
    if (error instanceof AppError) return `${error.wireCode}: ${error.message}`
    throw error
  }
}

export function pathsOf({ resolved }: Resolving): string[] {
  return resolved.files.map(({ path }) => path)
}
