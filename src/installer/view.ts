import type { Download, DownloadFile } from './installer.ts'
import { describeSource } from './names.ts'
import type { DownloadRow, FileState } from './store.ts'

/** A download as others see it. */
export function viewOf({ task, wanted: _, files, ...row }: DownloadRow): Download {
  const { bytesTotal, bytesCompleted, bytesPerSecond } = row
  return {
    ...row,
    task: task.kind,
    source: task.kind === 'install' ? describeSource(task.source) : task.source,
    etaSeconds:
      bytesTotal === null || bytesPerSecond === null || bytesPerSecond === 0
        ? null
        : Math.ceil(Math.max(0, bytesTotal - bytesCompleted) / bytesPerSecond),
    files: files.map(viewOfFile),
  }
}

function viewOfFile({ path, bytesTotal, bytesCompleted, status }: FileState): DownloadFile {
  return { path, bytesTotal, bytesCompleted, status }
}
