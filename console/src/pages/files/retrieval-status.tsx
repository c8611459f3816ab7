import { text } from '../../texts/texts.ts'
import type { StoredFile } from './nodes.ts'

export type RetrievalStatus = NonNullable<StoredFile['retrieval_status']>

export const retrievalStatuses: readonly RetrievalStatus[] = [
  'RAG Available',
  'Processing',
  'Pending',
  'Not Supported',
  'Failed',
]

const levels: Readonly<Record<RetrievalStatus, string>> = {
  'RAG Available': 'good',
  Processing: 'live',
  Pending: 'live',
  'Not Supported': 'warn',
  Failed: 'bad',
}

/** Whether a search finds the text of a file, and why not. */
export function RetrievalState({
  file: { retrieval_status: status, retrieval },
}: {
  file: Pick<StoredFile, 'retrieval_status' | 'retrieval'>
}) {
  if (status === null) return <span class="muted nowrap">{text('files.status.none')}</span>
  const reason = retrieval?.error?.message
  return (
    <div>
      <span class={`status ${levels[status]}`}>{text(`files.status.${status}`)}</span>
      {reason !== undefined && <div class="small muted reason">{reason}</div>}
      {status === 'Processing' && retrieval !== null && (
        <div class="small muted">{stageText(retrieval.state)}</div>
      )}
    </div>
  )
}

const stages = ['waiting', 'parsing', 'splitting', 'embedding', 'indexing'] as const

/** The step of the ingest; an unknown one is shown as it is. */
export function stageText(stage: string): string {
  const known = stages.find((one) => one === stage)
  return known === undefined ? stage : text(`files.stage.${known}`)
}

export function isInProgress({ retrieval_status: status }: Pick<StoredFile, 'retrieval_status'>) {
  return status === 'Processing' || status === 'Pending'
}
