import { Component, type FunctionComponent } from 'preact';

/** Draws a component again only when `same` says that its properties differ. */
export function memo<P extends object>(
  draw: FunctionComponent<P>,
  same: (before: P, after: P) => boolean,
) {
  const Drawn = draw;
  return class extends Component<P> {
    override shouldComponentUpdate(next: P) {
      return !same(this.props, next);
    }
    render(props: P) {
      return <Drawn {...props} />;
    }
  };
}
