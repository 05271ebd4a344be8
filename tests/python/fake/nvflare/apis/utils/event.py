def fire_event_to_components(event, components, ctx):
    for component in components:
        component(event)
