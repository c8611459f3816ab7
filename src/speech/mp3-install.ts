import { readOptions } from '#config/arguments.ts'
import { loadConfigFromProcess } from '#config/load.ts'
import { installRuntime } from '#install-packages.ts'
import { commandLine } from '#lib/own-program.ts'
import { localRuntime } from '#local-runtimes.ts'
import { StartError } from '#start-error.ts'
import {
  findMpg123,
  mpg123Folder,
  mpg123Package,
  setMpg123Folder,
} from './decoders/mpg123-package.ts'

const usage = `
Usage: ${commandLine('mp3 install')}

Installs the MP3 decoder (LGPL) into the data folder. A checkout and the npm package have it already.`

/** The command `mp3 install`. */
export async function installMp3(args: readonly string[]): Promise<number> {
  if (readOptions(args, { usage, options: {} }) === null) return 0
  const config = loadConfigFromProcess([])
  const folder = mpg123Folder(config.data)
  setMpg123Folder(folder)
  if (findMpg123() === null) await installRuntime(localRuntime(config, 'mp3'))
  const path = findMpg123()
  if (path === null) throw new StartError(`${mpg123Package} was installed but is not in ${folder}.`)
  process.stdout.write(`MP3 is decoded by ${path}.\n`)
  return 0
}
