import { useEffect, useState } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Notice } from '../../ui/notice.tsx'
import { Progress } from '../../ui/progress.tsx'
import { interrupted } from './begun-uploads.ts'
import {
  cancelAll,
  cancelUpload,
  clearEnded,
  discard,
  retryFailed,
  retryUpload,
  showInterrupted,
  type Upload,
  uploads,
} from './upload-queue.ts'

/** Rows of one panel; the sums count all. */
const shownMax = 50

const levels: Readonly<Record<Upload['state'], string>> = {
  waiting: '',
  sending: 'live',
  done: 'good',
  failed: 'bad',
  cancelled: 'warn',
}

/** Those that need attention first. */
const order: readonly Upload['state'][] = ['failed', 'sending', 'waiting', 'cancelled', 'done']

/** The uploads of this visit, and those that an earlier one left. */
export function UploadPanel() {
  useEffect(showInterrupted, [])
  return (
    <>
      <Interrupted />
      <Running />
    </>
  )
}

function Interrupted() {
  if (interrupted.value.length === 0) return null
  return (
    <Notice>
      <strong>{text('files.interrupted')}</strong>
      {interrupted.value.map((begun) => (
        <div key={begun.uploadId} class="row between">
          <span class="truncate grow">
            {begun.name} <span class="small muted">{format.bytes(begun.bytes)}</span>
          </span>
          <Button
            size="small"
            kind="quiet"
            icon="cross"
            label={text('files.cancel_upload', { name: begun.name })}
            onClick={() => discard(begun)}
          />
        </div>
      ))}
    </Notice>
  )
}

function Running() {
  const [isOpen, setOpen] = useState(true)
  const all = uploads.value
  if (all.length === 0) return null
  const count = (state: Upload['state']) => all.filter((one) => one.state === state).length
  const wanted = all.filter(({ state }) => state !== 'cancelled')
  const sum = (key: 'bytes' | 'sent') => wanted.reduce((total, one) => total + one[key], 0)
  const failed = count('failed')
  const isActive = count('sending') + count('waiting') > 0
  const shown = all
    .toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state))
    .slice(0, shownMax)
  return (
    <section class="card" aria-label={text('files.uploads')}>
      <div class="download">
        <div class="row between">
          <strong>
            {text(isActive ? 'files.uploading' : 'files.uploaded', {
              done: count('done'),
              all: wanted.length,
            })}
          </strong>
          <div class="row">
            {failed > 1 && (
              <Button size="small" icon="refresh" onClick={retryFailed}>
                {text('files.retry_failed', { count: failed })}
              </Button>
            )}
            <Button
              size="small"
              kind="quiet"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
            >
              {text(isOpen ? 'files.uploads_less' : 'files.uploads_more')}
            </Button>
            {isActive ? (
              <Button size="small" kind="quiet" icon="cross" onClick={cancelAll}>
                {text('files.cancel_all')}
              </Button>
            ) : (
              <Button size="small" kind="quiet" icon="cross" onClick={clearEnded}>
                {text('action.close')}
              </Button>
            )}
          </div>
        </div>
        <Progress label={text('files.uploads')} value={sum('sent')} max={sum('bytes')} />
        <p class="small muted">
          {format.bytes(sum('sent'))} / {format.bytes(sum('bytes'))}
        </p>
      </div>
      {isOpen && (
        <ul class="uploads">
          {shown.map((upload) => (
            <UploadRow key={upload.id} upload={upload} />
          ))}
          {all.length > shownMax && (
            <li class="small muted">
              {text('files.uploads_rest', { count: all.length - shownMax })}
            </li>
          )}
        </ul>
      )}
    </section>
  )
}

function UploadRow({ upload }: { upload: Upload }) {
  const { id, name, bytes, sent, state, reason } = upload
  const share = bytes === 0 ? 1 : sent / bytes
  return (
    <li>
      <span class="truncate grow" title={name}>
        {name}
      </span>
      <span class="small muted nowrap">
        {state === 'sending' ? format.number(share, { style: 'percent' }) : format.bytes(bytes)}
      </span>
      <span class={`status ${levels[state]}`}>{text(`files.upload.${state}`)}</span>
      {state === 'waiting' || state === 'sending' ? (
        <Button
          size="small"
          kind="quiet"
          icon="cross"
          label={text('files.cancel_upload', { name })}
          onClick={() => cancelUpload(id)}
        />
      ) : (
        (state === 'failed' || state === 'cancelled') && (
          <Button
            size="small"
            kind="quiet"
            icon="refresh"
            label={text('files.retry_upload', { name })}
            onClick={() => retryUpload(id)}
          />
        )
      )}
      {reason !== null && <p class="small reason">{reason}</p>}
    </li>
  )
}
