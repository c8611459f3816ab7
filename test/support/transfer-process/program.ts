import type { InstallerSettings } from '#installer/config.ts'
import type { RemoteFile } from '#installer/sources/source.ts'
import { createTransfer } from '#installer/transfer/transfer.ts'
import { resolveHost } from '#outbound/resolve.ts'

/**
 * A transfer in a separate process, which a test can kill or limit. Its argument is a JSON job; it
 * prints progress and outcome as JSON lines.
 */
const [job = ''] = process.argv.slice(2)
const asked: { file: RemoteFile; partPath: string; settings: InstallerSettings } = JSON.parse(job)
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const transfer = createTransfer(asked.settings, { fetch, resolve: resolveHost })
try {
  const file = await transfer(asked.file, {
    partPath: asked.partPath,
    signal: new AbortController().signal,
    onProgress: (bytes) => print({ bytes }),
    onVerifying: () => print({ isVerifying: true }),
    logLine: (level, message) => print({ level, message }),
  })
  print({ file })
} catch (error) {
  const { wireCode } = error as { wireCode?: string }
  print({ failure: wireCode ?? String(error) })
}
