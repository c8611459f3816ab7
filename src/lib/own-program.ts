/**
 * How this program starts parts of itself and reads the files that ship with it. It runs in three
 * forms: from source, as a bundle of JavaScript files, or as a single binary.
 */

import { dirname } from 'node:path'

/** Set by `scripts/build.ts`. */
declare const SLUICE_FORM: 'bundle' | 'binary'

const form = typeof SLUICE_FORM === 'undefined' ? 'source' : SLUICE_FORM

/** The parts of this program that run in processes of their own; `src/cli.ts` starts them. */
export type Role =
  | 'worker'
  | 'extract-text'
  | 'run-model'
  | 'run-encoder'
  | 'recognise-speech'
  | 'speak-text'
  | 'create-database'

const entry = new URL(form === 'source' ? '../main.ts' : './main.js', import.meta.url)

/** The command of a child process. A binary is its own entry point: it needs no path. */
export function roleCommand(role: Role, ...args: readonly string[]): string[] {
  // No package of a child may be downloaded because it is missing.
  const program = form === 'binary' ? [] : ['--no-install', Bun.fileURLToPath(entry)]
  return [process.execPath, ...program, role, ...args]
}

/** Bun's own command line, for its package manager; a binary contains it. */
export function bunCommand(...args: readonly string[]) {
  return {
    command: [process.execPath, ...args],
    environment: form === 'binary' ? { BUN_BE_BUN: '1' } : {},
  }
}

/** The program of a thread, given by its source. A build has all of them in one folder. */
export function threadProgram(source: URL): URL {
  if (form === 'source') return source
  const name = source.pathname.slice(source.pathname.lastIndexOf('/') + 1)
  return new URL(name.replace(/\.ts$/, '.js'), entry)
}

/** How an operator runs a command: `bun run llama:install` or `sluice llama install`. */
export function commandLine(command: string): string {
  if (form !== 'source') return `sluice ${command}`
  return command === 'serve' ? 'bun start' : `bun run ${command.replaceAll(' ', ':')}`
}

/** Where packages that a build does not contain are looked for first. */
export const programFolder =
  form === 'binary' ? dirname(process.execPath) : Bun.fileURLToPath(new URL('.', entry))

/** What a zstd frame starts with. */
const zstdMagic = 0xfd2fb528

/**
 * The content of a file that was imported with the type `file`. A build compresses these files, and
 * gives their paths relative to its folder.
 */
export async function readOwnFile(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await Bun.file(new URL(path, entry)).bytes()
  const isCompressed =
    bytes.length >= 4 && new DataView(bytes.buffer).getUint32(0, true) === zstdMagic
  return isCompressed ? new Uint8Array(await Bun.zstdDecompress(bytes)) : bytes
}
