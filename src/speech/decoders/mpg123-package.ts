import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { commandLine, programFolder } from '#lib/own-program.ts'
import { AudioError } from './decoder.ts'

/**
 * The package that decodes MP3. It is LGPL, so bundles and binaries do not contain it: everybody may
 * replace it. They look for it in `node_modules` beside the program, then in the data folder.
 */
export const mpg123Package = 'mpg123-decoder'
export const mpg123Version = '1.0.3'
const installCommand = commandLine('mp3 install')

let installFolder: string | null = null

/** Where `mp3 install` puts the package. Set at the start. */
export function setMpg123Folder(folder: string): void {
  installFolder = folder
}

/** The folder of the package in the data folder. */
export function mpg123Folder(dataFolder: string): string {
  return resolve(join(dataFolder, 'mp3'))
}

/** Throws an `AudioError` if the package is not installed. */
export async function loadMpg123(): Promise<typeof import('mpg123-decoder')> {
  const path = findMpg123()
  if (path !== null) return import(pathToFileURL(path).href)
  throw new AudioError(
    'unsupported_audio',
    `This server has no MP3 decoder. The operator installs it with: ${installCommand}`,
  )
}

/** The entry point of the package; null if it is not installed. */
export function findMpg123(): string | null {
  for (const folder of [programFolder, installFolder]) {
    if (folder === null) continue
    const path = entryAbove(folder)
    if (path !== null) return path
  }
  return null
}

/** Bun's own resolution would download a package that is nowhere. */
function entryAbove(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const path = join(at, 'node_modules', mpg123Package, 'index.js')
    if (existsSync(path)) return path
    if (at === dirname(at)) return null
  }
}
