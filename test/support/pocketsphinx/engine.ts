import { dlopen } from 'bun:ffi'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const program = join(import.meta.dir, 'program.ts')

/** Whether the Debian packages are installed; see `test.skipIf(!pocketsphinxExists)`. */
export const pocketsphinxExists = existsSync('/usr/share/pocketsphinx/model/en-us') && loads()

/** The command line of the real recogniser, for an engine of kind `exec`. */
export function pocketsphinxCommand(options: { framed: boolean } = { framed: false }): string[] {
  return [process.execPath, program, ...(options.framed ? ['--framed'] : [])]
}

function loads(): boolean {
  try {
    dlopen('libpocketsphinx.so.3', { ps_args: { args: [], returns: 'ptr' } }).close()
    return true
  } catch {
    return false
  }
}
