import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { ModelDownload } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Fault, Notice } from '../../ui/notice.tsx'
import { Progress } from '../../ui/progress.tsx'
import { useQuery } from '../../ui/query.ts'
import { announce, announceFault, perform } from '../../ui/toasts.tsx'
import { downloadTitle } from './runtimes.tsx'

const everyMs = 1_000
/** A longer rest is shown in minutes. */
const secondsShownMax = 90

/** Running downloads. Those that end while the page is open are announced. */
export function Downloads({ round, onChange }: { round: number; onChange: () => void }) {
  const query = useQuery(
    (signal) => call('GET /v1/model-installer/downloads', { signal }),
    `downloads ${round}`,
    { everyMs },
  )
  const [logsOf, setLogsOf] = useState<ModelDownload | null>(null)
  const rows = query.data?.data
  useAnnouncedEnds(rows, onChange)
  if (query.error !== undefined && rows === undefined) {
    return <Fault error={query.error} onRetry={query.reload} />
  }
  if (rows === undefined || rows.length === 0) return null
  return (
    <section class="stack tight">
      <h2>{text('installer.downloads')}</h2>
      <ul class="card">
        {rows.map((download) => (
          <DownloadRow
            key={download.download_id}
            download={download}
            onChange={query.reload}
            onLogs={() => setLogsOf(download)}
          />
        ))}
      </ul>
      {logsOf !== null && <Logs download={logsOf} onClose={() => setLogsOf(null)} />}
    </section>
  )
}

function useAnnouncedEnds(rows: readonly ModelDownload[] | undefined, onChange: () => void): void {
  const known = useRef<ReadonlySet<string>>(new Set())
  useEffect(() => {
    if (rows === undefined) return
    const now = new Set(rows.map(({ download_id: id }) => id))
    const ended = [...known.current].filter((id) => !now.has(id))
    known.current = now
    for (const id of ended) {
      void call('GET /v1/model-installer/downloads/{download_id}', {
        path: { download_id: id },
      }).then(({ model: name, status, error }) => {
        const model = downloadTitle(name)
        if (status === 'failed') announceFault(new Error(`${model}: ${error?.message ?? status}`))
        else
          announce(
            text(`installer.ended.${status === 'cancelled' ? status : 'completed'}`, { model }),
          )
        onChange()
      }, announceFault)
    }
  }, [rows])
}

function DownloadRow({
  download,
  onChange,
  onLogs,
}: {
  download: ModelDownload
  onChange: () => void
  onLogs: () => void
}) {
  const { download_id: id, source, status, error } = download
  const model = downloadTitle(download.model)
  const path = { download_id: id }
  const act = async (action: 'pause' | 'resume' | 'cancel') => {
    if (action === 'cancel') {
      const isSure = await confirm({
        title: text('installer.cancel_title', { model }),
        consequence: text('installer.cancel_consequence'),
        action: text('installer.cancel'),
        isDangerous: true,
      })
      if (!isSure) return
    }
    const operation = `POST /v1/model-installer/downloads/{download_id}/${action}` as const
    await perform(() => call(operation, { path }), text(`installer.done.${action}`, { model }))
    onChange()
  }
  const canPause = status === 'downloading' || status === 'queued' || status === 'resolving'
  return (
    <li class="download">
      <div class="row between">
        <div>
          <strong>{model}</strong> <span class="small muted">{source}</span>
        </div>
        <div class="row">
          <span class={`status ${status === 'paused' ? 'warn' : 'live'}`}>
            {text(`installer.status.${status}`)}
          </span>
          {status === 'paused' && (
            <Button size="small" icon="play" onClick={() => void act('resume')}>
              {text('installer.resume')}
            </Button>
          )}
          {canPause && (
            <Button size="small" icon="pause" onClick={() => void act('pause')}>
              {text('installer.pause')}
            </Button>
          )}
          <Button size="small" kind="quiet" onClick={onLogs}>
            {text('installer.logs')}
          </Button>
          <Button size="small" kind="quiet" icon="cross" onClick={() => void act('cancel')}>
            {text('installer.cancel')}
          </Button>
        </div>
      </div>
      <Progress label={model} value={download.bytes_completed} max={download.bytes_total} />
      <p class="small muted">{progressText(download)}</p>
      {error !== null && <Notice kind="warn">{error.message}</Notice>}
    </li>
  )
}

function progressText(download: ModelDownload): string {
  const { bytes_completed: done, bytes_total: total, bytes_per_second: rate } = download
  const parts = [
    total === null ? format.bytes(done) : `${format.bytes(done)} / ${format.bytes(total)}`,
  ]
  if (rate !== null) parts.push(`${format.bytes(rate)}/s`)
  const { eta_seconds: eta } = download
  if (eta !== null) {
    const isShort = eta < secondsShownMax
    parts.push(
      isShort
        ? text('installer.eta_seconds', { seconds: Math.ceil(eta) })
        : text('installer.eta', { minutes: Math.ceil(eta / 60) }),
    )
  }
  return parts.join(' · ')
}

function Logs({ download, onClose }: { download: ModelDownload; onClose: () => void }) {
  const path = { download_id: download.download_id }
  const query = useQuery(
    (signal) => call('GET /v1/model-installer/downloads/{download_id}/logs', { path, signal }),
    `logs ${download.download_id}`,
    { everyMs },
  )
  const lines = query.data?.data ?? []
  return (
    <Dialog
      wide
      title={text('installer.logs_of', { model: downloadTitle(download.model) })}
      onClose={onClose}
    >
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <section class="events" aria-label={text('installer.logs')} tabIndex={0}>
        <ol>
          {lines.map(({ seq, ts, level, message }) => (
            <li key={seq}>
              <span class="muted">{new Date(ts).toLocaleTimeString()}</span>
              <strong>{level}</strong>
              <span>{message}</span>
            </li>
          ))}
        </ol>
      </section>
    </Dialog>
  )
}
