import type { ComponentChildren } from 'preact';

export function Card(props: { title: string; wide?: boolean; children: ComponentChildren }) {
  return (
    <section class={props.wide ? 'card wide' : 'card'}>
      <h2>{props.title}</h2>
      {props.children}
    </section>
  );
}
