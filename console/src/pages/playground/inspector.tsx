import { useState } from 'preact/hooks'
import { format, text } from '../../texts/texts.ts'
import { CodeBlock } from '../../ui/code.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { type CodeClient, codeClients, codeLabels, renderCode } from './client-code.ts'
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
  const labels = codeLabels[surface]
  const tabs = [
    { name: 'events' as View, label: text('playground.events', { count: answer.eventCount }) },
    ...codeClients.map((name) => ({ name: name as View, label: labels[name] })),
  ]
  return (
    <Dialog wide title={text('playground.inspect')} onClose={onClose}>
      <Tabs label={text('playground.inspect')} tabs={tabs} selected={view} onSelect={setView}>
        {view === 'events' ? (
          <Events turn={turn} />
        ) : (
          <CodeBlock
            label={labels[view]}
            code={renderCode(view, { surface, request, origin: location.origin })}
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
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="events" aria-label={text('playground.raw')} tabIndex={0}>
      <ol>
        {shown.map(({ at, event, data }, index) => (
          <li key={index}>
            <span class="muted nowrap">{format.ms(at)}</span>
            <strong class="nowrap">{event}</strong>
            <code class="truncate" title={data}>
              {data}
            </code>
          </li>
        ))}
      </ol>
    </section>
  )
}
