import type { InstallView } from './install-now.ts'

const barChars = 30
/** A pipe gets a line per this share. */
const shareOfLine = 0.1

/** Shows the progress of a download: a bar on a terminal, a few lines in a pipe. */
export function createTerminalProgress(
  output: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
): InstallView & { end(): void } {
  let shown = -1
  let isBarOpen = false
  const closeBar = () => {
    if (isBarOpen) output.write('\n')
    isBarOpen = false
  }
  return {
    log(level, message) {
      closeBar()
      output.write(`${level === 'info' ? '' : `${level}: `}${message}\n`)
    },
    progress(bytes, total) {
      const share = total === null || total === 0 ? 0 : bytes / total
      const step = output.isTTY ? Math.floor(share * 1000) : Math.floor(share / shareOfLine)
      if (step === shown || (step === 0 && !output.isTTY)) return
      shown = step
      const text = total === null ? megabytes(bytes) : `${megabytes(bytes)} of ${megabytes(total)}`
      if (!output.isTTY) {
        output.write(`${text}\n`)
        return
      }
      const filled = Math.round(share * barChars)
      const bar = '#'.repeat(filled).padEnd(barChars, '.')
      output.write(`\r[${bar}] ${Math.floor(share * 100)} %  ${text}  `)
      isBarOpen = true
    },
    end: closeBar,
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
