import { useState } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { CodeBlock, CopyButton } from '../../ui/code.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import type { RawEvent } from './answer.ts'
import { type CodeClient, codeClients, codeLabels, renderCode } from './client-code.ts'
import { prettyJson } from './part-view.tsx'
import type { Turn } from './request.ts'

type View = CodeClient | 'events'

/** The newest events that are rendered. */
const shownMax = 300

/** The request as a program, and the events as they came. */
export function Inspector({ turn, onClose }: { turn: Turn; onClose: () => void }) {
  const [view, setView] = useState<View>('events')
  const { answer } = turn
  const { surface, request } = answer
  void answer.version.value
  const tabs = [
    { name: 'events' as View, label: text('playground.events', { count: answer.eventCount }) },
    ...codeClients[surface].map((name) => ({ name: name as View, label: codeLabels[name] })),
  ]
  return (
    <Dialog wide title={text('playground.inspect')} onClose={onClose}>
      <Tabs label={text('playground.inspect')} tabs={tabs} selected={view} onSelect={setView}>
        {view === 'events' ? (
          <Events turn={turn} />
        ) : (
          <CodeBlock
            label={codeLabels[view]}
            code={renderCode(view, { request, text: turn.question.text, origin: location.origin })}
          />
        )}
      </Tabs>
    </Dialog>
  )
}

function Events({ turn }: { turn: Turn }) {
  const { events } = turn.answer
  const shown = events.slice(-shownMax)
  if (shown.length === 0) return <p class="muted">{text('playground.events_gone')}</p>
  const lines = events.map(({ event, data }) => `event: ${event}\ndata: ${data}\n\n`)
  return (
    <div class="stack tight">
      <div class="row between">
        <span class="small muted">
          {shown.length < turn.answer.eventCount &&
            text('playground.events_shown', { count: shown.length })}
        </span>
        <CopyButton label={text('playground.events_copy')} value={lines.join('')} />
      </div>
      <ol class="events" aria-label={text('playground.raw')}>
        {shown.map((event) => (
          <li key={event.number}>
            <Event {...event} />
          </li>
        ))}
      </ol>
    </div>
  )
}

/** One line; opened, all of its data. */
function Event({ at, event, data }: RawEvent) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span class="muted nowrap">{format.ms(at)}</span>
        <strong class="nowrap">{event}</strong>
        <code class="truncate">{isOpen ? '' : data}</code>
      </summary>
      {isOpen && <pre>{prettyJson(data)}</pre>}
    </details>
  )
}
