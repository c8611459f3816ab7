import type {
  DeletedModel,
  DownloadLineRecord,
  DownloadLines,
  DownloadRecord,
  InstalledModelRecord,
  StorageRecord,
} from './answer-schema.ts'
import type { InstalledModel } from './installed.ts'
import type { Download, DownloadLine, StorageUsage } from './installer.ts'
import { inVersion } from './names.ts'

export function renderDownload(download: Download): DownloadRecord {
  return {
    download_id: download.id,
    object: 'model_download',
    task: download.task,
    model: download.model,
    source: download.source,
    revision: download.revision,
    status: download.status,
    bytes_total: download.bytesTotal,
    bytes_completed: download.bytesCompleted,
    bytes_per_second: download.bytesPerSecond,
    eta_seconds: download.etaSeconds,
    files: download.files.map(({ path, bytesTotal, bytesCompleted, status }) => ({
      path,
      bytes_total: bytesTotal,
      bytes_completed: bytesCompleted,
      status,
    })),
    attempts: download.attempts,
    error: download.error,
    started_at: download.startedAt.toISOString(),
    updated_at: download.updatedAt.toISOString(),
    finished_at: download.finishedAt?.toISOString() ?? null,
    started_by: download.startedBy,
  }
}

export function renderLine({ seq, at, level, message }: DownloadLine): DownloadLineRecord {
  return { seq, ts: at.toISOString(), level, message }
}

export function renderLines(
  id: string,
  lines: readonly DownloadLine[],
  afterSeq: number,
): DownloadLines {
  const nextSeq = lines.at(-1)?.seq ?? afterSeq
  return { object: 'list', download_id: id, data: lines.map(renderLine), next_seq: nextSeq }
}

export function renderModel(model: InstalledModel, uses: readonly string[]): InstalledModelRecord {
  const [only, ...others] = model.files
  return {
    object: 'installed_model',
    name: model.name,
    source: model.source,
    revision: model.revision,
    bytes: model.bytes,
    sha256: only === undefined || others.length > 0 ? null : only.sha256,
    files: model.files.map((file) => ({ ...file, path: inVersion(file.path) })),
    verified: model.isVerified,
    installed_at: model.installedAt,
    in_use_by: [...uses],
  }
}

export function renderDeleted(name: string, freedBytes: number): DeletedModel {
  return { object: 'installed_model.deleted', name, deleted: true, freed_bytes: freedBytes }
}

export function renderStorage(usage: StorageUsage): StorageRecord {
  return { object: 'model_storage', ...usage }
}
