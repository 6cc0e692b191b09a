// The choices that the plots of a section share: their axis, smoothing, events as marks, and the way back from a zoom.

import {h, part} from '../kit/dom.js';
import {show} from '../kit/patch.js';
import {AXES, axesOf} from './course.js';
import {choices, choose, onChoice, rangeOf, zoom} from './view_state.js';

/** The controls. options: course and run, as of lines.js. */
export function plotControls(options) {
  return part('plot-choices', mount, options);
}

function mount(box, given) {
  let options = given;
  const draw = () => show(box, view(options));
  draw();
  return {
    update(next) {
      options = next;
      draw();
    },
    remove: onChoice(draw),
  };
}

function view({course, run}) {
  const {x, smoothing, marks} = choices();
  const axes = axesOf(course);
  const axis = axes.includes(x) ? x : 'env_steps';
  return h('div', {class: 'plot-choices', role: 'group', 'aria-label': 'Plots'},
    h('label', {}, 'Along ', h('select', {id: 'plots-x', value: axis, onchange: (event) => choose({x: event.currentTarget.value})},
      axes.map((name) => h('option', {value: name}, AXES[name])))),
    h('label', {}, 'Smoothing ', h('input', {id: 'plots-smoothing', type: 'range', min: 0, max: 0.98, step: 0.02, value: smoothing,
      oninput: (event) => choose({smoothing: Number(event.currentTarget.value)})})),
    h('label', {}, h('input', {id: 'plots-marks', type: 'checkbox', checked: marks, onchange: (event) => choose({marks: event.currentTarget.checked})}), ' events'),
    h('button', {type: 'button', class: 'quiet', id: 'plots-all', disabled: !rangeOf(run, axis), onclick: () => zoom(run, axis, null)}, 'Show all'));
}
