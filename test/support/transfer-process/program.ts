import type { RemoteFile } from '#installer/sources/source.ts'
import { createTransfer, type TransferSettings } from '#installer/transfer/create-transfer.ts'
import { resolveHost } from '#outbound/resolve.ts'

/**
 * A transfer in a process of its own, so that a test can kill it or give it a small disk. It is told
 * what to do by its one argument, and tells each progress, and how it ended, as a line.
 */
const [job = ''] = process.argv.slice(2)
const asked: { file: RemoteFile; partPath: string; settings: TransferSettings } = JSON.parse(job)
const tell = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const transfer = createTransfer(asked.settings, { fetch, resolve: resolveHost })
try {
  const file = await transfer(asked.file, {
    partPath: asked.partPath,
    signal: new AbortController().signal,
    onProgress: (bytes) => tell({ bytes }),
    onVerifying: () => tell({ isVerifying: true }),
    logLine: (level, message) => tell({ level, message }),
  })
  tell({ file })
} catch (error) {
  const { wireCode } = error as { wireCode?: string }
  tell({ failure: wireCode ?? String(error) })
}
